import { Module } from '@nestjs/common';
import { AccessTokenModule } from '../../access-token/access-token.module.js';
import { CustomerRefreshModule } from '../../customer-refresh/customer-refresh.module.js';
import { IdentityModule } from '../../identity/identity.module.js';
import { TransferModule } from '../../transfer/transfer.module.js';
import { IdentityTokenGrant } from './identity-token.grant.js';

@Module({
  imports: [TransferModule, IdentityModule, AccessTokenModule, CustomerRefreshModule],
  providers: [IdentityTokenGrant],
})
export class IdentityTokenGrantModule {}
