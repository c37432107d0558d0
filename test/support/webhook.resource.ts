import { IsOptional, IsUrl } from 'class-validator';
import { Column, Entity, PrimaryColumn } from 'typeorm';
import { IsUuid } from '../../src/oauth/parameters.js';
import { AreScopes, IsIdentifier, IsName, Secret } from '../../src/registry/resources/entry-rules.js';
import { organizationResource } from '../../src/registry/resources/organization.resource.js';
import { defineResource, RANDOM_SECRET } from '../../src/registry/resources/registry-resource.js';

declare module '../../src/audit/audit-event.js' {
  interface AuditPartyKinds {
    webhook: true;
  }
}

/** A registry resource that the service does not have. This file defines it completely. */
@Entity('webhook')
export class Webhook {
  @PrimaryColumn('varchar', { name: 'webhook_id', length: 128 })
  webhookId!: string;

  @Column('varchar', { length: 200 })
  name!: string;

  @Column('varchar', { length: 200 })
  url!: string;

  @Column('varchar', { name: 'organization_id', length: 36 })
  organizationId!: string;

  @Column('varchar', { name: 'signing_hash', length: 64 })
  signingHash!: string;

  @Column('simple-json')
  events!: string[];

  @Column('boolean', { name: 'from_file' })
  fromFile!: boolean;

  @Column('integer')
  revision!: number;
}

class WebhookEntry {
  @IsIdentifier()
  webhook_id!: string;

  @IsName()
  name!: string;

  @IsUrl({ protocols: ['https'], require_protocol: true }, { message: 'must be an https URL' })
  url!: string;

  @IsUuid()
  organization_id!: string;

  @Secret()
  signing_secret?: string;

  @IsOptional()
  @AreScopes()
  events: string[] = [];
}

export const webhookResource = defineResource<WebhookEntry, Webhook>({
  noun: 'webhook',
  entry: WebhookEntry,
  entity: Webhook,
  key: { field: 'webhook_id', column: 'webhookId' },
  references: [{ field: 'organization_id', column: 'organizationId', resource: organizationResource }],
  secret: {
    field: 'signing_secret',
    column: 'signingHash',
    kind: RANDOM_SECRET,
    isRequired: true,
  },
});
