import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { ACME } from '../support/test-registry.js';
import type { FuzzedService } from './fuzzed-service.js';

const FIELDS = ['access_token', 'entity_id', 'expires_in', 'organization_id', 'token_type'];

/** Whether the process is still the one that was started, is ready, and does what it did before. */
export class Health {
  private startedAt: string | undefined;

  constructor(private readonly service: FuzzedService) {}

  /** Throws what is wrong; answers the megabytes of memory that the process holds. */
  async check(): Promise<number> {
    const { process, url, managementUrl } = this.service;
    if (process.code !== null) throw new Error(`the process has ended with ${process.code}: ${process.stderr}`);
    const wrong = /^.*(ERROR|FATAL|UnhandledPromise|DeprecationWarning).*$/m.exec(process.stdout + process.stderr);
    if (wrong) throw new Error(`the process says: ${wrong[0]}`);
    const ready = await fetch(`${managementUrl}/health/ready`);
    if (ready.status !== 200) throw new Error(`it is not ready: ${ready.status}`);
    await this.issuesTokens(url);
    return this.memory(await (await fetch(`${managementUrl}/metrics`)).text());
  }

  /** An ordinary request is answered with what it always was, and nothing else. */
  private async issuesTokens(url: string): Promise<void> {
    const answer = await fetch(url + TOKEN, { method: 'POST', body: JSON.stringify(cookieBody()) });
    const body = (await answer.json()) as Record<string, unknown>;
    const fields = Object.keys(body).sort().join();
    const isRight = answer.status === 200 && fields === FIELDS.join() && body.organization_id === ACME;
    if (!isRight) throw new Error(`an ordinary request is answered with ${answer.status} ${JSON.stringify(body)}`);
  }

  private memory(metrics: string): number {
    const [, startedAt] = /^process_start_time_seconds (\S+)$/m.exec(metrics) ?? [];
    this.startedAt ??= startedAt;
    if (startedAt !== this.startedAt) throw new Error('it is another process');
    const [, bytes] = /^process_resident_memory_bytes (\S+)$/m.exec(metrics) ?? [];
    return Math.round(Number(bytes) / 2 ** 20);
  }
}
