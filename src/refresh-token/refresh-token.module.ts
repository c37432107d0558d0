import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { CustomerFamilies } from './customer-families.js';
import { RefreshAudit } from './refresh-audit.js';
import { RefreshFamily } from './refresh-family.entity.js';
import { RefreshFamilyAncestor } from './refresh-family-ancestor.entity.js';
import { RefreshTokenLookup } from './refresh-token-lookup.js';
import { RefreshTokens } from './refresh-tokens.js';

const EXPORTED = [RefreshAudit, RefreshTokens, RefreshTokenLookup, CustomerFamilies];

/** Refresh tokens of agents and customers: their families, their rotation and the detection of reuse. */
@Module({
  imports: [TypeOrmModule.forFeature([RefreshFamily, RefreshFamilyAncestor]), AccessTokenModule],
  providers: EXPORTED,
  exports: EXPORTED,
})
export class RefreshTokenModule {}
