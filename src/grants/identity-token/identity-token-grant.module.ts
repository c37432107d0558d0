import { Module } from '@nestjs/common';
import { TransferModule } from '../../transfer/transfer.module.js';
import { IdentityTokenGrant } from './identity-token.grant.js';

@Module({ imports: [TransferModule], providers: [IdentityTokenGrant] })
export class IdentityTokenGrantModule {}
