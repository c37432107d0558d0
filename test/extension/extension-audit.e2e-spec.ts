import { Get, Module, Param } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { OutputCapture } from '../../packages/conformance-kit/src/output-capture.js';
import { ApiRoute, type AuditEntry, type AuditSink, ExtensionAudit, PublicController } from '../../src/public/grant.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { expectError } from '../support/expect-error.js';
import { startTestService } from '../support/test-service.js';
import { serviceOfTest, useService } from '../support/use-service.js';

@PublicController('audit')
class AuditController {
  constructor(private readonly audit: ExtensionAudit<'device_approval'>) {}

  @Get(':event')
  @ApiRoute({ summary: 'Record an event' })
  record(@Param('event') event: string): object {
    const name = event as 'device_approval.approved';
    this.audit.record({ event: name, outcome: 'success', actor: { kind: 'customer' } });
    return {};
  }

  /** None of these calls compiles. */
  wrong(): void {
    // @ts-expect-error: an event of the service
    this.audit.record({ event: 'token.issued', outcome: 'success', actor: { kind: 'customer' } });
    // @ts-expect-error: the prefix of another extension
    this.audit.record({ event: 'device.approved', outcome: 'success', actor: { kind: 'customer' } });
  }
}

@Module({ controllers: [AuditController] })
class AuditedModule {}

describe('the audit events of an extension', () => {
  const service = useService(() => {
    const auditSink = { write: (entry: AuditEntry) => void received.push(entry) };
    const extension = { name: 'device_approval', modules: [AuditedModule], auditSink };
    return { ...extension, log: output.log };
  });
  const received: AuditEntry[] = [];
  const output = new OutputCapture();

  it('writes events with the name of the extension to the sink of the service and to that of the extension', async () => {
    const before = received.length;
    expect((await service.send('GET', '/audit/device_approval.approved')).status).toBe(200);
    await service.post(TOKEN, cookieBody());
    const events = ['device_approval.approved', 'identity.created', 'token.issued'];
    expect(received.slice(before).map(({ event }) => event)).toEqual(events);
    expect(service.audit.map(({ event }) => event)).toEqual(events);
  });

  it.each([
    'token.issued',
    'device.approved',
    'device_approval.a.b',
    'device_approval.Approved',
    'device_approval.',
    'approved',
  ])('responds 500 to the name %s, writes no event, and says why in the log', async (name) => {
    const before = received.length;
    const response = await service.send('GET', `/audit/${name}`);
    expectError(response, { status: 500, error: 'server_error', hint: undefined });
    expect(output.about(response.headers.get('x-request-id') as string).join()).toContain(`audit event \\"${name}\\"`);
    expect(received).toHaveLength(before);
  });

  it.each([
    ['token', 'the extension\'s name "token" begins audit events of the service; rename it'],
    ['Device!', 'the extension\'s name "Device!" must be in snake_case; rename it'],
  ])('does not start with an extension named %s', async (name, message) => {
    await expect(startTestService({ name })).rejects.toThrow(message);
  });
});

describe('an audit sink that', () => {
  const failures: [string, AuditSink['write']][] = [
    ['throws', () => raise(new TypeError('amqp://user:hunter2@queue'))],
    ['rejects', async () => raise(new TypeError('amqp://user:hunter2@queue'))],
    ['rejects with something else than an Error', () => Promise.reject('amqp://user:hunter2@queue')],
  ];

  it.each(failures)('%s changes no response, is counted at each event, and logged once a minute', async (_, write) => {
    const output = new OutputCapture();
    const service = await serviceOfTest({ auditSink: { write }, log: output.log });
    const before = service.audit.length;
    for (let i = 0; i < 3; i++) expect((await service.post(TOKEN, cookieBody())).status).toBe(200);
    expect(service.audit.length - before).toBe(6);
    const metrics = await (await fetch(`${service.managementUrl}/metrics`)).text();
    expect(metrics).toContain(`cas_audit_sink_failures_total ${service.audit.length}\n`);
    const reported = () => output.lines.filter((line) => line.includes('an audit sink failed at'));
    expect(reported()).toHaveLength(1);
    expect(output.lines.join()).not.toContain('hunter2');
    service.clock.advance({ seconds: 60 });
    await service.post(TOKEN, cookieBody());
    expect(reported()).toHaveLength(2);
  });
});

function raise(error: Error): never {
  throw error;
}
