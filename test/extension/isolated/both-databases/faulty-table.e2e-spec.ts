import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Column, Entity, PrimaryColumn } from 'typeorm';
import { expect, it } from 'vitest';
import { Expires } from '../../../../src/platform/database/entity-checks.js';
import { startTestService } from '../../../support/test-service.js';

@Expires()
@Entity('old_ticket')
class OldTicket {
  @PrimaryColumn('varchar', { length: 36 })
  id!: string;

  @Column('datetime', { name: 'expires_at', precision: 3 })
  expiresAt!: Date;
}

@Module({ imports: [TypeOrmModule.forFeature([OldTicket])] })
class FaultyModule {}

it('the service does not start with a table to be purged that has no indexed expires_at column', async () => {
  const startupError = 'OldTicket: @Expires() needs a column named "expires_at" with an @Index; add it';
  await expect(startTestService({ modules: [FaultyModule] })).rejects.toThrow(startupError);
});
