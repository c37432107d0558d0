import { OpenApiResponses, type OpenApiResponsesDocument } from '../support/openapi-responses.js';
import {
  bytesOf,
  endsItsConnection,
  exchangeBytes,
  FRAGMENT_IDLE_MS,
  type FuzzRequest,
  sendShared,
  setHeader,
} from './fuzz-request.js';
import { mutatedRequest } from './mutations.js';
import { type OpenApi, type Operation, operationsOf } from './operations.js';
import { Oracle } from './oracle.js';
import { Random } from './random.js';
import { rawShape } from './raw-shapes.js';
import { harvest, type World } from './world.js';

export interface FuzzOptions {
  requests: number;
  seed: number;
  /** The index of the first request, to repeat a single request. */
  first?: number;
  /** The milliseconds within which every response must arrive. */
  patience: number;
  progress?: (line: string) => void;
}

export interface Figures {
  seed: number;
  requests: number;
  seconds: number;
  statuses: Record<string, number>;
  succeeded: string[];
  neverSucceeded: string[];
  megabytes: [afterFirstQuarter: number, atTheEnd: number];
}

const WORKER_COUNT = 64;
const RAW_SHAPE_RATIO = 0.04;

/** A run of the fuzzer: it sends requests and checks their responses. */
export class Run {
  private readonly operations: Operation[];
  private readonly weights: Record<string, number>;
  private readonly oracle: Oracle;
  private readonly statuses: Record<string, number> = {};
  private readonly succeeded = new Set<string>();
  private readonly startedAt = performance.now();
  private failure: Error | undefined;

  constructor(
    private readonly options: FuzzOptions,
    private readonly urls: Record<'public' | 'management', string>,
    document: OpenApi & OpenApiResponsesDocument,
    private readonly world: World,
  ) {
    this.operations = operationsOf(document);
    this.weights = Object.fromEntries(this.operations.map(({ weight }, index) => [index, weight]));
    this.oracle = new Oracle(new OpenApiResponses(document), this.operations);
  }

  /** Sends the requests with the indexes from `from` to `to`. */
  async send(from: number, to: number): Promise<void> {
    let next = from;
    const work = async () => {
      while (next < to && !this.failure) await this.sendOne(next++);
    };
    await Promise.all(Array.from({ length: WORKER_COUNT }, work));
    this.options.progress?.(`${next} requests, ${Math.round((performance.now() - this.startedAt) / 1000)} s`);
    if (this.failure) throw this.failure;
  }

  figures(megabytes: Figures['megabytes']): Figures {
    const names = this.operations.map(nameOf);
    return {
      seed: this.options.seed,
      requests: this.options.requests,
      seconds: Math.round((performance.now() - this.startedAt) / 1000),
      statuses: this.statuses,
      succeeded: names.filter((name) => this.succeeded.has(name)),
      neverSucceeded: names.filter((name) => !this.succeeded.has(name)),
      megabytes,
    };
  }

  private async sendOne(number: number): Promise<void> {
    const index = (this.options.first ?? 0) + number;
    const random = new Random(this.options.seed, index);
    if (random.chance(RAW_SHAPE_RATIO)) return this.sendRaw(index, random);
    const operation = this.operations[Number(random.weighted(this.weights))] as Operation;
    const request = mutatedRequest(operation, this.world, random);
    const id = `fz-request-${this.options.seed}-${index}`;
    const isNamed = !request.headers.some(([name]) => /^(x-request-id|traceparent)$/i.test(name));
    if (isNamed) setHeader(request, 'X-Request-Id', id);
    try {
      const violation = endsItsConnection(request)
        ? await this.sendSeparately(request)
        : await this.sendShared(request, isNamed ? id : undefined, operation);
      if (violation !== undefined) this.fail(index, violation, request, bytesOf(request));
    } catch (error) {
      this.fail(index, (error as Error).message, request, bytesOf(request));
    }
  }

  private async sendShared(
    request: FuzzRequest,
    id: string | undefined,
    operation: Operation,
  ): Promise<string | undefined> {
    const response = await sendShared(this.urls[request.port], request, this.options.patience);
    this.count(response.status);
    const isForeign = id !== undefined && response.headers.get('x-request-id') !== id;
    const violation = isForeign ? 'the response to another request' : this.oracle.violationOf(request, response);
    if (violation !== undefined) return `${violation}\nresponse: ${JSON.stringify(response)}`;
    if (response.status < 400 && request.method === operation.method) this.succeeded.add(nameOf(operation));
    harvest(this.world, request, response);
    return undefined;
  }

  /** Sends a request on a separate connection. It must get at least one response and no violation. */
  private async sendSeparately(request: FuzzRequest): Promise<string | undefined> {
    if (!request.headers.some(([name]) => /^connection$/i.test(name))) request.headers.push(['Connection', 'close']);
    // The response to an invalid request has a body even for HEAD, because the parser does not know the method.
    if (request.method === 'HEAD') request.method = 'GET';
    const bytes = bytesOf(request);
    const { responses, wasReset } = await exchangeBytes(this.urls[request.port], bytes, this.options.patience);
    if (responses.length === 0 && !(wasReset && bytes.length > 16_000)) return 'no response';
    for (const response of responses) {
      this.count(response.status);
      const violation =
        responses.length === 1 ? this.oracle.violationOf(request, response) : this.oracle.violationOfRaw(response);
      if (violation !== undefined) return `${violation}\nresponse: ${JSON.stringify(response)}`;
    }
    return undefined;
  }

  private async sendRaw(index: number, random: Random): Promise<void> {
    const port = random.pick(['public', 'management'] as const);
    const { name, bytes } = rawShape(random);
    try {
      const { patience } = this.options;
      const { responses, wasReset } = await exchangeBytes(this.urls[port], bytes, patience, FRAGMENT_IDLE_MS);
      const violation = responses.map((each) => this.oracle.violationOfRaw(each)).find((each) => each !== undefined);
      for (const { status } of responses) this.count(status);
      if (violation !== undefined) this.fail(index, violation, { port, notes: [name] }, bytes);
      if (responses.length === 0 && !wasReset && /[^\r\n]/.test(bytes.toString('latin1')))
        this.fail(index, 'no response', { port, notes: [name] }, bytes);
    } catch (error) {
      this.fail(index, (error as Error).message, { port, notes: [name] }, bytes);
    }
  }

  private count(status: number): void {
    this.statuses[status] = (this.statuses[status] ?? 0) + 1;
  }

  private fail(
    index: number,
    violation: string,
    { port, notes }: Pick<FuzzRequest, 'port' | 'notes'>,
    bytes: Buffer,
  ): void {
    const repeat = `FUZZ_SEED=${this.options.seed} FUZZ_FIRST=${index} FUZZ_REQUESTS=1`;
    const line = JSON.stringify(bytes.toString('latin1'));
    this.failure ??= new Error(`${violation}\n${repeat}\n${notes.join('; ') || 'nothing mutated'}\n${port} ${line}`);
  }
}

function nameOf({ method, path }: Operation): string {
  return `${method} ${path}`;
}
