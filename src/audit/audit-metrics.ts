import { Counter } from 'prom-client';
import type { MetricsRegistry } from '../platform/metrics/metrics-registry.js';
import type { AuditEntry, AuditSink } from './audit-event.js';

/** Counts audit events, so that what is told and what is counted cannot differ. */
export class AuditMetrics implements AuditSink {
  private readonly tokens: Counter<'grant'>;
  private readonly identities: Counter<'grant'>;
  private readonly redemptions: Counter<'kind' | 'outcome'>;
  private readonly signIns: Counter<'outcome'>;
  private readonly revocations: Counter<'kind'>;

  constructor(metrics: MetricsRegistry) {
    const registers = [metrics];
    const counter = <Label extends string>(name: string, help: string, labelNames: Label[]) =>
      new Counter({ name: `cas_${name}`, help, labelNames, registers });
    this.tokens = counter('tokens_issued_total', 'Access tokens issued, by grant.', ['grant']);
    this.identities = counter('identities_created_total', 'Customers created, by grant.', ['grant']);
    this.redemptions = counter('code_redemptions_total', 'One-time codes redeemed and replayed.', ['kind', 'outcome']);
    this.signIns = counter('sign_ins_total', 'Attempts of agents to sign in.', ['outcome']);
    this.revocations = counter('revocations_total', 'Revocations, by what they end.', ['kind']);
  }

  write({ event, grant = '', subject }: AuditEntry): void {
    const [kind = '', outcome = ''] = event.split('.');
    if (event === 'token.issued') this.tokens.inc({ grant });
    else if (event === 'identity.created') this.identities.inc({ grant });
    else if (event === 'token.revoked') this.revocations.inc({ kind: subject?.kind ?? '' });
    else if (kind === 'sign_in') this.signIns.inc({ outcome });
    else if (outcome === 'redeemed' || outcome === 'replayed') this.redemptions.inc({ kind, outcome });
  }
}
