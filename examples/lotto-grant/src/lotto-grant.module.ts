import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { IdentityModule } from 'customer-authorization-service/grant';
import { LottoGrant } from './lotto.grant.js';
import { LottoTicket } from './lotto-ticket.entity.js';

@Module({ imports: [IdentityModule, TypeOrmModule.forFeature([LottoTicket])], providers: [LottoGrant] })
export class LottoGrantModule {}
