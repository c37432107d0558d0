import type { Counter } from 'prom-client';
import type { MetricsRegistry } from '../metrics.js';
import { AUDIT_EVENT_NAMES, type AuditEntry, type AuditSink } from './audit-event.js';

const SERVICE_EVENTS: ReadonlySet<string> = new Set(AUDIT_EVENT_NAMES);

/** Counts audit events. Metrics and audit log have the same source, so that they cannot differ. */
export class AuditMetrics implements AuditSink {
  private readonly tokens: Counter<'grant'>;
  private readonly identities: Counter<'grant'>;
  private readonly redemptions: Counter<'kind' | 'outcome'>;
  private readonly signIns: Counter<'outcome'>;
  private readonly revocations: Counter<'actor'>;
  private readonly browserLinks: Counter<'outcome'>;
  private readonly endedSessions: Counter<'actor'>;

  constructor(metrics: MetricsRegistry) {
    const counter = <Label extends string>(name: string, help: string, ...labels: Label[]) =>
      metrics.counted(`cas_${name}`, help, ...labels);
    this.tokens = counter('tokens_issued_total', 'Access tokens issued, by grant.', 'grant');
    this.identities = counter('identities_created_total', 'Customers created, by grant.', 'grant');
    this.redemptions = counter('code_redemptions_total', 'One-time codes redeemed and replayed.', 'kind', 'outcome');
    // Created with 0, because Prometheus sees no increase when a counter first appears with a higher value.
    for (const kind of ['transfer_token', 'authorization_code', 'refresh_token'])
      for (const outcome of ['redeemed', 'replayed']) this.redemptions.inc({ kind, outcome }, 0);
    this.browserLinks = counter('browser_links_total', 'Links of browsers created and ended.', 'outcome');
    for (const outcome of ['linked', 'forgotten', 'ended']) this.browserLinks.inc({ outcome }, 0);
    this.endedSessions = counter('sessions_ended_total', 'Endings of all sessions of a customer.', 'actor');
    for (const actor of ['customer', 'agent', 'operator']) this.endedSessions.inc({ actor }, 0);
    this.signIns = counter('sign_ins_total', 'Attempts of agents to sign in.', 'outcome');
    const byActor = 'Tokens revoked, by the kind of the caller that revoked them.';
    this.revocations = counter('revocations_total', byActor, 'actor');
  }

  write({ event, grant = '', actor }: AuditEntry): void {
    switch (event) {
      case 'token.issued':
        return this.tokens.inc({ grant });
      case 'identity.created':
        return this.identities.inc({ grant });
      case 'token.revoked':
        return this.revocations.inc({ actor: actor.kind });
      case 'sessions.ended':
        return this.endedSessions.inc({ actor: actor.kind });
    }
    if (!SERVICE_EVENTS.has(event)) return; // an extension may have events like `device.redeemed`
    const [kind = '', outcome = ''] = event.split('.');
    if (kind === 'browser') this.browserLinks.inc({ outcome });
    else if (kind === 'sign_in') this.signIns.inc({ outcome });
    else if (outcome === 'redeemed' || outcome === 'replayed') this.redemptions.inc({ kind, outcome });
  }
}
