import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../scripts/free-port.js';

/** The path of the server program, which `npm test` sets. */
export const REDIS_SERVER = process.env.TEST_REDIS_SERVER;

/** A private Redis without persistence, which the test may freeze, kill and start again. */
export class TestRedis {
  private child: ChildProcess | undefined;

  private constructor(private readonly port: number) {}

  static async start(): Promise<TestRedis> {
    const redis = new TestRedis(await freePort());
    await redis.start();
    return redis;
  }

  get url(): string {
    return `redis://:a-password-of-redis@127.0.0.1:${this.port}`;
  }

  async start(): Promise<void> {
    const address = ['--port', `${this.port}`, '--bind', '127.0.0.1'];
    const options = ['--save', '', '--requirepass', 'a-password-of-redis', '--dir', '/tmp'];
    this.child = spawn(REDIS_SERVER as string, [...address, ...options], { stdio: 'ignore' });
    while (!(await this.acceptsConnections())) await sleep(20);
  }

  signal(name: NodeJS.Signals): void {
    this.child?.kill(name);
  }

  async kill(): Promise<void> {
    const { child } = this;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  private acceptsConnections(): Promise<boolean> {
    return new Promise((resolve) => {
      const socket = connect(this.port, '127.0.0.1');
      socket.once('connect', () => resolve(Boolean(socket.end())));
      socket.once('error', () => resolve(false));
    });
  }
}
