import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { GrantStoresModule } from '../../../src/public/grant.js';
import { LottoGrant } from './lotto.grant.js';
import { LottoTicket } from './lotto-ticket.entity.js';

@Module({ imports: [GrantStoresModule, TypeOrmModule.forFeature([LottoTicket])], providers: [LottoGrant] })
export class LottoGrantModule {}
