import type { Logger as PinoLogger } from 'pino';
import type { Counter } from 'prom-client';
import type { MetricsRegistry } from '../metrics.js';
import { requestContext } from '../request-context/request-context.js';
import type { AuditDetails, AuditEntry, AuditEvent, AuditEventName, AuditParty, AuditSink } from './audit-event.js';

/** Callers record an event after its action, so that the log lists only what has happened. */
export class Audit {
  private readonly sinks: AuditSink[];

  /** @param log the audit log, or what takes its place in a test */
  constructor(log: AuditSink, metrics: MetricsRegistry) {
    this.sinks = [log, new AuditMetrics(metrics)];
  }

  /** Adds the request's id, grant, client and organization, unless the event has its own. */
  record(event: AuditEvent): void {
    const entry = withRequest(event);
    for (const sink of this.sinks) sink.write(entry);
  }

  success(event: AuditEventName, actor: AuditParty, subject: AuditParty, details: Partial<AuditDetails> = {}): void {
    this.record({ event, outcome: 'success', actor, subject, ...details });
  }
}

function withRequest(event: AuditEvent): AuditEntry {
  const request = requestContext.current();
  if (!request) return event;
  const { id: requestId, grant, clientId, organizationId } = request;
  return { grant, clientId, organizationId, ...event, requestId };
}

export function party(kind: AuditParty['kind'], id?: string): AuditParty {
  return { kind, ...(id !== undefined && { id }) };
}

/** Writes audit events to the log with `"stream":"audit"`. LOG_LEVEL does not suppress them. */
export class AuditLog implements AuditSink {
  private readonly logger: PinoLogger;
  private customerTokens = 0;

  /**
   * @param omitsCreatedEntries whether to omit the entries that a registry file creates, as of the demo registry
   * @param tokensPerEntry how many tokens of customers share one entry; 0 if they have none
   */
  constructor(
    logger: PinoLogger,
    private readonly omitsCreatedEntries = false,
    private readonly tokensPerEntry = 1,
  ) {
    this.logger = logger.child({ stream: 'audit' }, { level: 'info' });
  }

  write(entry: AuditEntry): void {
    const { event, outcome, actor, subject, grant, reason, details } = entry;
    if (this.omitsCreatedEntries && actor.kind === 'service' && details?.change === 'created') return;
    if (event === 'token.issued' && subject?.kind === 'customer' && !this.isLogged()) return;
    const ids = { organization_id: entry.organizationId, client_id: entry.clientId };
    this.logger.info({
      ...{ event, outcome, actor, subject, ...ids, grant, reason, details },
      request_id: entry.requestId,
    });
  }

  /** Tokens of customers are most of the audit, and the metrics count them. */
  private isLogged(): boolean {
    return this.tokensPerEntry > 0 && this.customerTokens++ % this.tokensPerEntry === 0;
  }
}

/** Counts audit events. Metrics and log get the same entries, so that they cannot differ. */
class AuditMetrics implements AuditSink {
  private readonly tokens: Counter<'grant'>;
  private readonly identities: Counter<'grant'>;
  private readonly redemptions: Counter<'kind' | 'outcome'>;
  private readonly signIns: Counter<'outcome'>;
  private readonly revocations: Counter<'actor'>;
  private readonly browserLinks: Counter<'outcome'>;
  private readonly endedSessions: Counter<'actor'>;

  constructor(metrics: MetricsRegistry) {
    const counter = <Label extends string>(name: string, help: string, ...labels: Label[]) =>
      metrics.counter(`cas_${name}`, help, ...labels);
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
    const [kind = '', outcome = ''] = event.split('.');
    if (kind === 'browser') this.browserLinks.inc({ outcome });
    else if (kind === 'sign_in') this.signIns.inc({ outcome });
    else if (outcome === 'redeemed' || outcome === 'replayed') this.redemptions.inc({ kind, outcome });
  }
}
