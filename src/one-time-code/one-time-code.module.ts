import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { SessionModule } from '../session/session.module.js';
import { OneTimeCode } from './one-time-code.entity.js';
import { OneTimeCodes } from './one-time-codes.js';

@Module({
  imports: [TypeOrmModule.forFeature([OneTimeCode]), SessionModule],
  providers: [OneTimeCodes],
  exports: [OneTimeCodes],
})
export class OneTimeCodeModule {}
