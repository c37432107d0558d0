import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { IdentityModule } from '../identity/identity.module.js';
import { OperatorModule } from '../operator/operator.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { CustomerFamilies } from './customer-families.js';
import { CustomerRefreshTokens } from './customer-refresh-tokens.js';
import { RefreshFamilyController } from './refresh-family.controller.js';
import { RefreshFamily, RefreshFamilyAncestor } from './refresh-family.entity.js';
import { RefreshTokens } from './refresh-tokens.js';

const ENTITIES = TypeOrmModule.forFeature([RefreshFamily, RefreshFamilyAncestor]);
const EXPORTED = [RefreshTokens, CustomerRefreshTokens, CustomerFamilies];

/** Refresh tokens of agents and customers: their families, their rotation and the detection of reuse. */
@Module({
  imports: [ENTITIES, AccessTokenModule, IdentityModule, OperatorModule, RegistryModule],
  controllers: [RefreshFamilyController],
  providers: EXPORTED,
  exports: EXPORTED,
})
export class RefreshTokenModule {}
