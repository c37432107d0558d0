import type { RequestListener } from 'node:http';
import type { Configuration } from '../configuration/configuration.js';
import type { ListenerName } from './listener.decorators.js';
import { type ConnectionLimits, Listener, type ListenerHooks } from './listener.js';

export const TIMEOUTS: Omit<ConnectionLimits, 'maxConnections' | 'keepAliveTimeoutMs'> = {
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 20_000,
  silenceTimeoutMs: 60_000, // longer than the longest request: 28 s for the revocation feed
  checkIntervalMs: 1_000,
};

const MAX_CONNECTIONS: Record<ListenerName, number> = {
  public: 1_000,
  // only the cluster reaches this port: probes, Prometheus, the operator, and pools of resource servers
  management: 250,
  admin: 50,
};

/** The public port, the management port, and ADMIN_PORT, which takes routes over from the latter (protocol §1.5). */
export class Listeners {
  private readonly listeners: { public: Listener; management: Listener; admin?: Listener };

  constructor(
    { HOST: host, PORT, MANAGEMENT_PORT, ADMIN_PORT, KEEP_ALIVE_SECONDS }: Configuration,
    hooks: ListenerHooks,
    limits: Partial<ConnectionLimits> = {},
  ) {
    const defaults = { ...TIMEOUTS, keepAliveTimeoutMs: KEEP_ALIVE_SECONDS * 1_000 };
    const listenerOf = (name: ListenerName, port: number) =>
      new Listener(name, { port, host }, hooks, { ...defaults, maxConnections: MAX_CONNECTIONS[name], ...limits });
    this.listeners = {
      public: listenerOf('public', PORT),
      management: listenerOf('management', MANAGEMENT_PORT),
      ...(ADMIN_PORT !== undefined && { admin: listenerOf('admin', ADMIN_PORT) }),
    };
  }

  async listenForManagement(): Promise<void> {
    const { management, admin } = this.listeners;
    for (const listener of [management, admin]) await listener?.listen();
  }

  async serve(application: RequestListener): Promise<void> {
    for (const listener of Object.values(this.listeners)) listener.serve(application);
    await this.listeners.public.listen();
  }

  announceClose(): void {
    this.listeners.public.announceClose();
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.listeners).map((listener) => listener.close()));
  }

  get ports(): { port: number; managementPort: number; adminPort?: number } {
    const { management, admin } = this.listeners;
    return {
      port: this.listeners.public.port,
      managementPort: management.port,
      ...(admin && { adminPort: admin.port }),
    };
  }
}
