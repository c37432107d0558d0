import { createServer, type Server } from 'node:http';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createTestDatabase } from '../../../../packages/conformance-kit/src/test-database.js';
import { OtlpTracing } from '../../../../src/platform/tracing/otlp-tracing.js';
import { cookieBody, TOKEN } from '../../../support/cookie-grant.js';
import { useDatabase } from '../../../support/databases.js';
import { listen } from '../../../support/listen.js';
import { manage } from '../../../support/management-api.js';
import { environmentOf, startServiceProcess } from '../../../support/processes.js';
import { read } from '../../../support/project-files.js';
import { startTestService, type TestService } from '../../../support/test-service.js';
import { newCustomer, redeem, transferToken } from '../../../support/transfers.js';
import { serviceOfTest } from '../../../support/use-service.js';

interface Span {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  attributes: { key: string; value: Record<string, unknown> }[];
  status: { code?: number };
}

/** An OTLP receiver, which takes the part of the operator’s collector. */
class Receiver {
  readonly spans: Span[] = [];
  text = '';

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async start(): Promise<Receiver> {
    const server = createServer(async (request, response) => {
      let text = '';
      for await (const chunk of request.setEncoding('utf8')) text += chunk;
      receiver.text += `${text}\n`;
      if (request.url === '/v1/traces') {
        for (const { scopeSpans } of JSON.parse(text).resourceSpans)
          for (const { spans } of scopeSpans) receiver.spans.push(...spans);
      }
      response.end('{}');
    });
    const receiver = new Receiver(server, await listen(server));
    return receiver;
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }
}

const attribute = ({ attributes }: Span, name: string) =>
  Object.values(attributes.find(({ key }) => key === name)?.value ?? {})[0];

describe('tracing with OTEL_EXPORTER_OTLP_ENDPOINT', () => {
  let receiver: Receiver;
  let service: TestService;
  afterEach(() => receiver.close());

  async function start(environment: Record<string, string> = {}): Promise<void> {
    receiver = await Receiver.start();
    service = await startTestService({ environment: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, ...environment } });
  }

  it('ends with a start that fails', async () => {
    const stop = vi.spyOn(OtlpTracing.prototype, 'stop');
    await expect(start({ SIGNING_KEYS_FILE: '/does/not/exist' })).rejects.toThrow();
    expect(stop).toHaveBeenCalledOnce();
    stop.mockRestore();
  });

  it('makes each request a span, with its statements and its redemption as spans below it', async () => {
    await start();
    const { access_token } = await newCustomer(service);
    const code = await transferToken(service, access_token);
    await redeem(service, code);
    await service.stop();
    const root = receiver.spans.find((span) => attribute(span, 'cas.grant') === 'identity_token') as Span;
    expect(root).toMatchObject({ name: 'POST /v2/customer/token', kind: 2 });
    expect(attribute(root, 'http.response.status_code')).toBe(200);
    const ofTrace = receiver.spans.filter(({ traceId }) => traceId === root.traceId);
    const redemption = ofTrace.find(({ name }) => name === 'redemption') as Span;
    expect(redemption.parentSpanId).toBe(root.spanId);
    const statements = ofTrace.filter(({ name }) => name === 'database');
    expect(statements.some(({ parentSpanId }) => parentSpanId === redemption.spanId)).toBe(true);
    const ofRoot = receiver.spans.filter(
      ({ name, parentSpanId }) => name === 'database' && parentSpanId !== redemption.spanId,
    );
    expect(ofRoot.length, 'the statements of requests without a redemption').toBeGreaterThan(0);
    expect(statements.map((span) => attribute(span, 'db.query.text')).join()).toMatch(
      /UPDATE session SET kind = 'moved'/,
    );
    expect(new Set(receiver.spans.map(({ traceId }) => traceId)).size).toBe(3);
  });

  it('names the service and its version, and further attributes of OTEL_RESOURCE_ATTRIBUTES', async () => {
    vi.stubEnv('OTEL_SERVICE_NAME', 'auth-eu');
    vi.stubEnv('OTEL_RESOURCE_ATTRIBUTES', 'deployment.environment.name=staging');
    await start();
    vi.unstubAllEnvs();
    await newCustomer(service);
    await service.stop();
    const { version } = JSON.parse(read('package.json'));
    const { attributes } = JSON.parse(receiver.text.split('\n')[0] as string).resourceSpans[0].resource;
    const values = attributes.map(({ key, value }: Span['attributes'][number]) => [key, value.stringValue]);
    expect(Object.fromEntries(values)).toMatchObject({
      'service.name': 'auth-eu',
      'service.version': version,
      'deployment.environment.name': 'staging',
    });
  });

  it('contains no probe and no scrape', async () => {
    await start();
    for (const path of ['/health/live', '/health/ready', '/metrics']) await manage(service, 'GET', path);
    await newCustomer(service);
    await service.stop();
    const roots = receiver.spans.filter(({ kind }) => kind === 2);
    expect(roots.map(({ name }) => name)).toEqual(['POST /v2/customer/token']);
  });

  it('has only the traces that a caller begins with OTEL_TRACES_SAMPLER_ARG=0', async () => {
    await start({ OTEL_TRACES_SAMPLER_ARG: '0' });
    const trace = 'ab'.repeat(16);
    await newCustomer(service);
    await service.post(TOKEN, cookieBody(), { traceparent: `00-${trace}-${'cd'.repeat(8)}-01` });
    await service.stop();
    expect(new Set(receiver.spans.map(({ traceId }) => traceId))).toEqual(new Set([trace]));
  });

  it('continues the trace of the caller, and contains no secret', async () => {
    await start();
    const trace = 'ab'.repeat(16);
    const parent = 'cd'.repeat(8);
    const headers = {
      traceparent: `00-${trace}-${parent}-01`,
      authorization: 'Bearer MARKED',
      cookie: '__svc_cst=MARKED',
    };
    const { body, cookies } = await service.post(`${TOKEN}?x=MARKED`, cookieBody(), headers);
    await service.post(TOKEN, cookieBody({ client_id: 'MARKED', redirect_uri: 'MARKED' }), headers);
    await service.stop();
    const roots = receiver.spans.filter(({ parentSpanId }) => parentSpanId === parent);
    expect(roots).toHaveLength(2);
    for (const { traceId } of receiver.spans) expect(traceId).toBe(trace);
    const secret = cookies[1]?.split(/[=;]/)[1] as string;
    for (const each of ['MARKED', body.access_token.split(':')[1], secret]) expect(receiver.text).not.toContain(each);
  });

  it('fails no request when the receiver is unreachable or hangs, and the service still stops', async () => {
    receiver = await Receiver.start();
    const silent = createServer(() => undefined);
    for (const OTEL_EXPORTER_OTLP_ENDPOINT of ['http://127.0.0.1:9', await listen(silent)]) {
      const untraced = await serviceOfTest({ environment: { OTEL_EXPORTER_OTLP_ENDPOINT } });
      const responses = await Promise.all(Array.from({ length: 50 }, () => untraced.post(TOKEN, cookieBody())));
      expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
    }
    silent.close();
    silent.closeAllConnections();
  });
});

const database = useDatabase(createTestDatabase);

it('without OTEL_EXPORTER_OTLP_ENDPOINT the OpenTelemetry SDK and exporter are not loaded', async () => {
  const loaderHook =
    "import module from 'node:module'; module.registerHooks?.({ load(url, context, next) { if (/opentelemetry.(?!api)/.test(url)) process.stderr.write('LOADED '); return next(url, context); } });";
  const environment = { ...environmentOf(database), MIGRATE_ON_START: 'true' };
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(loaderHook)}`;
  const receiver = await Receiver.start();
  const off = await startServiceProcess({ ...environment, NODE_OPTIONS });
  const on = await startServiceProcess({ ...environment, NODE_OPTIONS, OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url });
  await Promise.all([off.terminate(), on.terminate()]);
  expect(off.process.stderr).not.toContain('LOADED');
  const hooks = Number(process.versions.node.split('.')[0]) >= 23;
  if (hooks) expect(on.process.stderr).toContain('LOADED');
  receiver.close();
});
