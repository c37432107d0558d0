import { Module } from '@nestjs/common';
import { AccessTokenModule } from '../../access-token/access-token.module.js';
import { IdentityModule } from '../../identity/identity.module.js';
import { OrganizationUserModule } from '../../organization-user/organization-user.module.js';
import { RefreshTokenModule } from '../../refresh-token/refresh-token.module.js';
import { TransferModule } from '../../transfer/transfer.module.js';
import { IdentityTokenGrant } from './identity-token.grant.js';

@Module({
  imports: [TransferModule, IdentityModule, OrganizationUserModule, AccessTokenModule, RefreshTokenModule],
  providers: [IdentityTokenGrant],
})
export class IdentityTokenGrantModule {}
