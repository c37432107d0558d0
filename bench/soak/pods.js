// @ts-check
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { exchange } from './exchange.js';

/** Shorter than the time after which the service closes idle connections, as in an ingress. */
const IDLE_CONNECTION_MS = 30_000;
/** How long requests go to a process after SIGTERM. It serves for 2 s after SIGTERM. */
const REMOVAL_MS = 1_000;
const POLL_MS = 100;
const SAMPLE_MS = 1_000;

/**
 * @typedef {object} Sample the state of a process at one moment
 * @property {number} at milliseconds since the start of the soak
 * @property {number} rssMb resident memory
 * @property {number} heapMb used heap
 * @property {number} lagMs longest delay of the event loop since the previous sample
 *
 * @typedef {object} Pod a process of the service
 * @property {string} name
 * @property {import('../server.js').Server} server
 * @property {Agent} agent its connections, which stay open between requests
 * @property {Sample[]} samples
 * @property {boolean} ended
 */

/** The processes of the service. Requests go to the processes of the rotation in turn. */
export class Pods {
  /** @type {Pod[]} every process, in the order of the starts */
  all = [];
  /** @type {Pod[]} */
  #rotation = [];
  #next = 0;
  #start;
  #now;

  /**
   * @param {() => Promise<import('../server.js').Server>} start @param {() => number} now milliseconds since the start
   */
  constructor(start, now) {
    this.#start = start;
    this.#now = now;
  }

  /** The process for the next request. @returns {Pod} */
  next() {
    const pod = this.#rotation[this.#next++ % this.#rotation.length];
    if (!pod) throw new Error('no process is in the rotation');
    return pod;
  }

  /** Starts a process and waits until it is ready. */
  async add() {
    const server = await this.#start();
    const agent = new Agent({ keepAlive: true, timeout: IDLE_CONNECTION_MS });
    const pod = { name: `process ${this.all.length + 1}`, server, agent, samples: [], ended: false };
    while (!(await isReady(pod))) await sleep(POLL_MS);
    this.all.push(pod);
    this.#rotation.push(pod);
  }

  /** Replaces each process of the rotation by a new one, one after the other, as a roll-out does. */
  async rollOut() {
    for (const old of [...this.#rotation]) {
      await this.add();
      await this.#remove(old);
    }
  }

  /** Samples each process until `signal` aborts. @param {AbortSignal} signal */
  async sample(signal) {
    while (!signal.aborted) {
      const pods = this.all.filter((pod) => !pod.ended);
      await Promise.all([sleep(SAMPLE_MS), ...pods.map((pod) => this.#sampleOne(pod))]);
    }
  }

  /**
   * Stops a process by SIGTERM. Soon after that, the process leaves the rotation, as in a cluster.
   *
   * @param {Pod} pod @throws Error if its exit code is not 0
   */
  async #remove(pod) {
    const exit = pod.server.stop('SIGTERM');
    await sleep(REMOVAL_MS);
    this.#rotation = this.#rotation.filter((other) => other !== pod);
    const [code] = await exit;
    pod.ended = true;
    pod.agent.destroy();
    if (code !== 0) throw new Error(`${pod.name} ended with the exit code ${code} after SIGTERM`);
  }

  /** @param {Pod} pod */
  async #sampleOne(pod) {
    const { status, text } = await exchange(pod, 'management', { method: 'GET', path: '/metrics' });
    if (status !== 200) return; // the process is stopping
    const value = (/** @type {string} */ name) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
    pod.samples.push({
      at: this.#now(),
      rssMb: value('process_resident_memory_bytes') / 1e6,
      heapMb: value('nodejs_heap_size_used_bytes') / 1e6,
      lagMs: value('nodejs_eventloop_lag_max_seconds') * 1e3,
    });
  }
}

/** @param {Pod} pod */
async function isReady(pod) {
  const { status } = await exchange(pod, 'management', { method: 'GET', path: '/health/ready' });
  return status === 200;
}
