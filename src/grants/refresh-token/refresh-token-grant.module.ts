import { Module } from '@nestjs/common';
import { RefreshTokenModule } from '../../refresh-token/refresh-token.module.js';
import { RefreshTokenGrant } from './refresh-token.grant.js';

@Module({ imports: [RefreshTokenModule], providers: [RefreshTokenGrant] })
export class RefreshTokenGrantModule {}
