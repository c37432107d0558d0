import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Entity, PrimaryColumn } from 'typeorm';
import { expect, it } from 'vitest';
import { startTestService } from '../../../support/test-service.js';

@Entity('forgotten_ticket')
class ForgottenTicket {
  @PrimaryColumn('varchar', { length: 36 })
  id!: string;
}

@Module({ imports: [TypeOrmModule.forFeature([ForgottenTicket])] })
class ForgetfulModule {}

it.each(['true', 'false'])(
  'the service does not start with an entity whose table no migration creates, with MIGRATE_ON_START=%s',
  async (MIGRATE_ON_START) => {
    const startupError =
      'ForgottenTicket: the database has no table "forgotten_ticket"; list the migration that creates it in migrations of the Extension, or in src/migrations/migrations.ts';
    const environment = { MIGRATE_ON_START };
    await expect(startTestService({ modules: [ForgetfulModule], environment })).rejects.toThrow(startupError);
  },
);
