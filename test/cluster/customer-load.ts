import { setTimeout as sleep } from 'node:timers/promises';
import { cookieBody, cookieHeader, TOKEN } from '../support/cookie-grant.js';
import type { TestResponse } from '../support/test-service.js';
import type { ClusterPod } from './cluster.js';

const WORKERS_PER_POD = 2;
/** The pause between two calls of a worker. */
const PAUSE_MS = 5;

/** A customer that got a token. */
export interface CreatedCustomer {
  cookie: string;
  entityId: string;
}

interface Call {
  status: number;
  /** The times of request and response, by `performance.now()`. */
  startedAt: number;
  endedAt: number;
}

/** New and returning customers on every pod, until it is stopped. It records all responses. */
export class CustomerLoad {
  readonly customers: CreatedCustomer[] = [];
  /** Returning customers that a pod identified as other customers. */
  readonly misidentified: string[] = [];
  readonly errorResponses: TestResponse[] = [];
  private readonly calls = new Map<ClusterPod, Call[]>();
  private readonly workers: Promise<void>[] = [];
  private stopped = false;

  constructor(pods: ClusterPod[]) {
    for (const pod of pods) {
      const calls: Call[] = [];
      this.calls.set(pod, calls);
      for (let count = 0; count < WORKERS_PER_POD; count++) this.workers.push(this.work(pod, calls));
    }
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await Promise.all(this.workers);
  }

  /** The number of calls of a pod by response status. */
  statuses(pod: ClusterPod): Record<number, number> {
    const counts: Record<number, number> = {};
    for (const { status } of this.callsOf(pod)) counts[status] = (counts[status] ?? 0) + 1;
    return counts;
  }

  /** The longest time between two responses with status 200, in milliseconds. */
  longestOutage(pod: ClusterPod): number {
    const served = this.callsOf(pod)
      .filter(({ status }) => status === 200)
      .map(({ endedAt }) => endedAt)
      .sort((one, other) => one - other);
    return Math.round(Math.max(0, ...served.slice(1).map((at, index) => at - (served[index] ?? at))));
  }

  longestWait(pod: ClusterPod): number {
    return Math.round(Math.max(...this.callsOf(pod).map(({ startedAt, endedAt }) => endedAt - startedAt)));
  }

  private callsOf(pod: ClusterPod): Call[] {
    return this.calls.get(pod) ?? [];
  }

  private async work(pod: ClusterPod, calls: Call[]): Promise<void> {
    while (!this.stopped) {
      const response = await this.call(pod, calls);
      if (response.status === 200) {
        const customer = { cookie: cookieHeader(response), entityId: response.body.entity_id };
        this.customers.push(customer);
        const again = await this.call(pod, calls, { cookie: customer.cookie });
        if (again.status === 200 && again.body.entity_id !== customer.entityId)
          this.misidentified.push(customer.entityId);
      }
      await sleep(PAUSE_MS);
    }
  }

  private async call(pod: ClusterPod, calls: Call[], headers = {}): Promise<TestResponse> {
    const startedAt = performance.now();
    const response = await pod.post(TOKEN, cookieBody(), headers);
    calls.push({ status: response.status, startedAt, endedAt: performance.now() });
    if (response.status !== 200) this.errorResponses.push(response);
    return response;
  }
}
