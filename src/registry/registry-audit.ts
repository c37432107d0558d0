import type { Audit } from '../audit/audit.js';
import type { AuditParty } from '../audit/audit-event.js';
import type { RegistryResource } from './resources/registry-resource.js';

interface AuditedChange {
  /** `service` for changes by the registry file. */
  actor: AuditParty | 'service';
  resource: RegistryResource;
  /** The key of the admin API. The key of the file is not used, because an agent's email must not be in the audit. */
  key: string;
  change: 'created' | 'changed' | 'deleted';
  fields?: string[];
}

export function auditRegistryChange(audit: Audit, { actor, resource, key, change, fields = [] }: AuditedChange): void {
  audit.record({
    event: 'registry.changed',
    outcome: 'success',
    actor: actor === 'service' ? { kind: 'service' } : actor,
    subject: { kind: resource.auditKind, id: key },
    details: { change, fields },
  });
}
