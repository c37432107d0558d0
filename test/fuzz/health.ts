import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { ACME } from '../support/test-registry.js';
import type { FuzzedService } from './fuzzed-service.js';

const FIELDS = ['access_token', 'entity_id', 'expires_in', 'organization_id', 'token_type'];

/** Checks that the process has not been restarted, is ready, and still issues tokens. */
export class Health {
  private startedAt: string | undefined;

  constructor(private readonly service: FuzzedService) {}

  /** Throws an error for an unhealthy process. Returns its resident memory in megabytes. */
  async check(): Promise<number> {
    const { process, url, managementUrl } = this.service;
    if (process.code !== null) throw new Error(`the process has ended with ${process.code}: ${process.stderr}`);
    const errorLine = /^.*(ERROR|FATAL|UnhandledPromise|DeprecationWarning).*$/m.exec(process.stdout + process.stderr);
    if (errorLine) throw new Error(`the process printed: ${errorLine[0]}`);
    const ready = await fetch(`${managementUrl}/health/ready`);
    if (ready.status !== 200) throw new Error(`the process is not ready: ${ready.status}`);
    await this.issuesTokens(url);
    return this.memory(await (await fetch(`${managementUrl}/metrics`)).text());
  }

  /** Checks that a valid request gets a token response with exactly the expected fields. */
  private async issuesTokens(url: string): Promise<void> {
    const response = await fetch(url + TOKEN, { method: 'POST', body: JSON.stringify(cookieBody()) });
    const body = (await response.json()) as Record<string, unknown>;
    const fields = Object.keys(body).sort().join();
    const isRight = response.status === 200 && fields === FIELDS.join() && body.organization_id === ACME;
    if (!isRight) throw new Error(`a valid request gets ${response.status} ${JSON.stringify(body)}`);
  }

  private memory(metrics: string): number {
    const [, startedAt] = /^process_start_time_seconds (\S+)$/m.exec(metrics) ?? [];
    this.startedAt ??= startedAt;
    if (startedAt !== this.startedAt) throw new Error('the process was restarted');
    const [, bytes] = /^process_resident_memory_bytes (\S+)$/m.exec(metrics) ?? [];
    return Math.round(Number(bytes) / 2 ** 20);
  }
}
