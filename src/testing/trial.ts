import type { Type } from '@nestjs/common';
import { type ObjectSchema, schemaOf } from '../openapi/schemas.js';
import type { DeclaredGrant } from '../token/grant.js';
import { type Answer, request } from './caller.js';
import { CapturedOutput } from './captured-output.js';
import { TestHouse, TOKEN } from './house.js';
import { type Asked, Judge } from './judge.js';
import type { GrantKit } from './kit.js';
import { HOME, SITE } from './kit-registry.js';
import { touchedPrototypes } from './prototypes.js';
import { startTestService, type TestService } from './service.js';
import { declarationOf, insistOnProvided, optionsOf } from './tried-grant.js';

/** Milliseconds in which every answer must be there; two cores may have much else to do. */
const PATIENCE = 10_000;

export type Sent = Record<string, unknown>;

export interface Ask {
  /** The token address when left out. */
  path?: string;
  /** The organization in the path. */
  organizationId?: string;
  /** In place of the caller's; `undefined` takes one away. */
  headers?: Record<string, string | undefined>;
}

/** What a refusal must be; what is left out may be anything that the contract knows. */
export interface Refusal {
  status?: number;
  error?: string | string[];
  hint?: RegExp;
}

/** A grant on trial: the real service with it, and how it is asked. */
export class Trial {
  readonly house: TestHouse;
  readonly judge: Judge;
  /** What the body class admits. */
  readonly schema: ObjectSchema;
  readonly prototypesTouched = touchedPrototypes();

  private constructor(
    readonly declared: DeclaredGrant,
    readonly kit: GrantKit,
    service: TestService,
    readonly output: CapturedOutput,
    private readonly patience: number,
  ) {
    this.house = new TestHouse(service);
    this.judge = new Judge(this.house, declared);
    this.schema = schemaOf(declared.body);
  }

  /** @throws Error when the service does not start with the grant */
  static async open(grant: Type, kit: GrantKit, patience = PATIENCE): Promise<Trial> {
    const declared = declarationOf(grant);
    const output = new CapturedOutput();
    try {
      const service = await startTestService({ ...optionsOf(declared, kit), log: output.log });
      await insistOnProvided(grant, service);
      return new Trial(declared, kit, service, output, patience);
    } catch (error) {
      output.release();
      throw error;
    }
  }

  /** Another process, so to speak, on the same database. */
  async secondService(): Promise<TestService> {
    const { service } = this.house;
    const options = { ...optionsOf(this.declared, this.kit), database: service.database, log: this.output.log };
    const second = await startTestService(options);
    second.clock.move((service.clock.now() - second.clock.now()) / 1000);
    return second;
  }

  async close(): Promise<void> {
    this.output.release();
    await this.house.service.stop();
  }

  /** The parameters of a fresh request that gets a token. */
  async body(more: Sent = {}): Promise<Sent> {
    const { organization_id } = this.schema.required?.includes('organization_id') ? { organization_id: HOME } : {};
    const own = await this.kit.valid(this.house);
    const given = { ...(organization_id && { organization_id }), ...own };
    return { grant_type: this.declared.name, client_id: SITE, ...given, ...more };
  }

  async callerHeaders(): Promise<Record<string, string>> {
    const { agentScope } = this.declared;
    const bearer = agentScope && { authorization: `Bearer ${await this.house.agentToken(agentScope)}` };
    return { ...bearer, ...(await this.kit.caller?.(this.house)) };
  }

  /**
   * Sends an object as JSON, and a text or bytes as they are.
   *
   * @throws Error when the answer is none that the contract knows, or does not come in time
   */
  async ask(
    body: Sent | string | Buffer,
    { path = TOKEN, organizationId, headers: own = {} }: Ask = {},
  ): Promise<Answer> {
    const all = Object.entries({ ...(await this.callerHeaders()), ...own });
    const headers = Object.fromEntries(all.filter((pair): pair is [string, string] => pair[1] !== undefined));
    const isRaw = typeof body === 'string' || Buffer.isBuffer(body);
    const signal = AbortSignal.timeout(this.patience);
    const init = { method: 'POST', headers, body: isRaw ? body : JSON.stringify(body), signal };
    const answer = await request(this.house.service.url + path, init).catch((error) => {
      throw signal.aborted ? new Error(`no answer in ${this.patience} ms`) : error;
    });
    await this.insist(answer, { organizationId, body: isRaw ? undefined : body });
    return answer;
  }

  /** Insists that an answer is one of the contract. */
  async insist(answer: Answer, asked: Asked = {}): Promise<void> {
    const fault = await this.judge.faultOf(answer, asked);
    if (fault !== undefined) throw new Error(`${fault}\n${this.told(answer)}`);
  }

  /** Asks, and insists on a token. */
  async granted(body: Sent | string, how: Ask = {}): Promise<Answer> {
    const answer = await this.ask(body, how);
    if (answer.status !== 200) throw new Error(`refused, where there should be a token\n${this.told(answer)}`);
    return answer;
  }

  /** Asks, and insists on a refusal. */
  async refused(expected: Refusal, body: Sent | string | Buffer, how: Ask = {}): Promise<Answer> {
    const answer = await this.ask(body, how);
    const { status = 400, error = answer.body.error, hint = /^/ } = expected;
    const isError = answer.status === status && [error].flat().includes(answer.body.error);
    if (answer.status === 200 || !isError || !hint.test(answer.body.error_hint ?? '')) {
      const wanted = [status, error, hint.source === '^' ? '' : `hint ${hint.source}`].flat().filter(Boolean).join(' ');
      throw new Error(`not refused with ${wanted}\n${this.told(answer)}`);
    }
    return answer;
  }

  /** An answer and what the log says of it, for whoever reads a failure. */
  private told({ status, text, headers }: Answer): string {
    const lines = this.output.about(headers.get('x-request-id') ?? 'none');
    return [`answer: ${status} ${text}`, ...lines.map((line) => `log: ${line.trim()}`)].join('\n');
  }
}
