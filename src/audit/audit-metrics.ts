import { type Count, type LabelledValues, labelledCounter } from '../platform/metrics/labelled-counter.js';
import type { MetricsRegistry } from '../platform/metrics/metrics-registry.js';
import { AUDIT_EVENT_NAMES, type AuditEntry, type AuditSink } from './audit-event.js';

const SERVICE_EVENTS: ReadonlySet<string> = new Set(AUDIT_EVENT_NAMES);

/** Counts audit events. Metrics and audit log have the same source, so that they cannot differ. */
export class AuditMetrics implements AuditSink {
  private readonly tokens: LabelledValues<Count>;
  private readonly identities: LabelledValues<Count>;
  private readonly redemptions: LabelledValues<Count>;
  private readonly signIns: LabelledValues<Count>;
  private readonly revocations: LabelledValues<Count>;
  private readonly browserLinks: LabelledValues<Count>;
  private readonly endedSessions: LabelledValues<Count>;

  constructor(metrics: MetricsRegistry) {
    const counter = (name: string, help: string, labelNames: string[]) =>
      labelledCounter(metrics, { name: `cas_${name}`, help, labelNames });
    this.tokens = counter('tokens_issued_total', 'Access tokens issued, by grant.', ['grant']);
    this.identities = counter('identities_created_total', 'Customers created, by grant.', ['grant']);
    this.redemptions = counter('code_redemptions_total', 'One-time codes redeemed and replayed.', ['kind', 'outcome']);
    // Created with 0, because Prometheus sees no increase when a counter first appears with a higher value.
    for (const kind of ['transfer_token', 'authorization_code', 'refresh_token'])
      for (const outcome of ['redeemed', 'replayed']) this.redemptions.at(kind).at(outcome).touch();
    this.browserLinks = counter('browser_links_total', 'Links of browsers created and ended.', ['outcome']);
    for (const outcome of ['linked', 'forgotten', 'ended']) this.browserLinks.at(outcome).touch();
    this.endedSessions = counter('sessions_ended_total', 'Endings of all sessions of a customer.', ['actor']);
    for (const actor of ['customer', 'agent', 'operator']) this.endedSessions.at(actor).touch();
    this.signIns = counter('sign_ins_total', 'Attempts of agents to sign in.', ['outcome']);
    this.revocations = counter('revocations_total', 'Tokens revoked, by the kind of the caller that revoked them.', [
      'actor',
    ]);
  }

  write({ event, grant = '', actor }: AuditEntry): void {
    switch (event) {
      case 'token.issued':
        return void this.tokens.at(grant).value.count++;
      case 'identity.created':
        return void this.identities.at(grant).value.count++;
      case 'token.revoked':
        return void this.revocations.at(actor.kind).value.count++;
      case 'sessions.ended':
        return void this.endedSessions.at(actor.kind).value.count++;
    }
    if (!SERVICE_EVENTS.has(event)) return; // an extension may have events like `device.redeemed`
    const [kind = '', outcome = ''] = event.split('.');
    if (kind === 'browser') this.browserLinks.at(outcome).value.count++;
    else if (kind === 'sign_in') this.signIns.at(outcome).value.count++;
    else if (outcome === 'redeemed' || outcome === 'replayed') this.redemptions.at(kind).at(outcome).value.count++;
  }
}
