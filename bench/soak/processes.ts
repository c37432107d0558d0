import { setTimeout as sleep } from 'node:timers/promises';
import type { Server } from '../support/server.js';

/** How long requests go to a process after SIGTERM. It serves for 2 s after SIGTERM. */
const REMOVAL_MS = 1_000;
const POLL_MS = 100;
const SAMPLE_MS = 1_000;

interface SampledProcess {
  server: Server;
  samples: { rssMb: number; heapMb: number; lagMs: number }[];
}

/** The processes of the service. Requests go to those of the rotation in turn. */
export class Processes {
  /** In the order of the starts. */
  readonly all: SampledProcess[] = [];
  private rotation: SampledProcess[] = [];
  private requestCount = 0;

  constructor(private readonly start: () => Promise<Server>) {}

  /** The process for the next request. */
  next(): Server {
    const { server } = this.rotation[this.requestCount++ % this.rotation.length] as SampledProcess;
    return server;
  }

  /** Starts a process and waits until it is ready. */
  async add(): Promise<void> {
    const server = await this.start();
    while (!(await fetch(`${server.managementUrl}/health/ready`)).ok) await sleep(POLL_MS);
    const process = { server, samples: [] };
    this.all.push(process);
    this.rotation.push(process);
  }

  /** Replaces each process of the rotation by a new one, one after the other. */
  async rollOut(): Promise<void> {
    for (const old of [...this.rotation]) {
      await this.add();
      await this.remove(old);
    }
  }

  /** Stops a process by SIGTERM. Soon after that, it leaves the rotation, as in a cluster. */
  private async remove(old: SampledProcess): Promise<void> {
    const exit = old.server.stop('SIGTERM');
    await sleep(REMOVAL_MS);
    this.rotation = this.rotation.filter((other) => other !== old);
    const code = await exit;
    if (code !== 0) throw new Error(`a process ended with the exit code ${code} after SIGTERM`);
  }

  /** Reads the metrics of each process until `signal` aborts. */
  async sample(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) await Promise.all([sleep(SAMPLE_MS), ...this.all.map(sampleOne)]);
  }
}

async function sampleOne({ server, samples }: SampledProcess): Promise<void> {
  const response = await fetch(`${server.managementUrl}/metrics`).catch(() => undefined);
  if (!response?.ok) return; // the process is stopping, or has ended
  const text = await response.text();
  const value = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
  samples.push({
    rssMb: value('process_resident_memory_bytes') / 1e6,
    heapMb: value('nodejs_heap_size_used_bytes') / 1e6,
    lagMs: value('nodejs_eventloop_lag_max_seconds') * 1e3,
  });
}
