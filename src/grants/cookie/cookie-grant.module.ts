import { Module } from '@nestjs/common';
import { IdentityModule } from '../../identity/identity.module.js';
import { CookieGrant } from './cookie.grant.js';

@Module({ imports: [IdentityModule], providers: [CookieGrant] })
export class CookieGrantModule {}
