import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessTokenModule } from '../../access-token/access-token.module.js';
import { CustomerModule } from '../../customer/customer.module.js';
import { IdentityModule } from '../../identity/identity.module.js';
import { JwtProofs } from '../../oauth/jwt-proofs.js';
import { RedemptionModule } from '../../redemption/redemption.module.js';
import { CustomersByKey } from './customers-by-key.js';
import { OneTimeCode } from './one-time-code.entity.js';
import { OneTimeCodes } from './one-time-codes.js';
import { UseCounter } from './use-counter.js';

const PROVIDERS = [CustomersByKey, JwtProofs, OneTimeCodes, UseCounter];

/** What a grant may inject: the stores of proofs, and the customers and users of `IdentityModule`. */
@Module({
  imports: [
    AccessTokenModule,
    CustomerModule,
    IdentityModule,
    RedemptionModule,
    TypeOrmModule.forFeature([OneTimeCode]),
  ],
  providers: PROVIDERS,
  exports: [...PROVIDERS, IdentityModule],
})
export class GrantStoresModule {}
