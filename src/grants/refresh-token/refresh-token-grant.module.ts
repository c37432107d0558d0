import { Module } from '@nestjs/common';
import { CustomerRefreshModule } from '../../customer-refresh/customer-refresh.module.js';
import { RefreshTokenGrant } from './refresh-token.grant.js';

@Module({ imports: [CustomerRefreshModule], providers: [RefreshTokenGrant] })
export class RefreshTokenGrantModule {}
