import { Module } from '@nestjs/common';
import { IdentityModule } from '../../../src/identity/identity.module.js';
import { LottoGrant } from './lotto.grant.js';

@Module({ imports: [IdentityModule], providers: [LottoGrant] })
export class LottoGrantModule {}
