import type { RequestListener } from 'node:http';
import type { Configuration } from '../configuration/configuration.js';
import { type ConnectionLimits, MANAGEMENT_LIMITS, SEPARATE_LIMITS } from './connection-limits.js';
import type { ListenerHooks } from './listeners.js';
import { Listener } from './listeners.js';

/** The management port, and the ports that take routes over from it if they are configured (protocol §1.5). */
export class ManagementListeners {
  private readonly all: [listener: Listener, port: number][];
  private readonly management: Listener;
  private readonly admin: Listener | undefined;
  private readonly metrics: Listener | undefined;

  constructor(
    private readonly configuration: Configuration,
    hooks: ListenerHooks,
    limits: Partial<ConnectionLimits> = {},
  ) {
    const { MANAGEMENT_PORT, ADMIN_PORT, METRICS_PORT } = configuration;
    this.management = new Listener('management', hooks, { ...MANAGEMENT_LIMITS, ...limits });
    this.all = [[this.management, MANAGEMENT_PORT]];
    const separate = (name: 'admin' | 'metrics', port: number | undefined) => {
      if (port === undefined) return undefined;
      const listener = new Listener(name, hooks, { ...SEPARATE_LIMITS, ...limits });
      this.all.push([listener, port]);
      return listener;
    };
    this.admin = separate('admin', ADMIN_PORT);
    this.metrics = separate('metrics', METRICS_PORT);
  }

  /** Opens all ports. If one of them cannot be opened, closes the others and rejects. */
  async listen(): Promise<void> {
    try {
      for (const [listener, port] of this.all) await listener.listen(port, this.configuration.HOST);
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  serve(application: RequestListener): void {
    for (const [listener] of this.all) listener.serve(application);
  }

  async close(): Promise<void> {
    await Promise.all(this.all.map(([listener]) => listener.close()));
  }

  /** The ports in use. */
  get ports(): { managementPort: number; adminPort?: number; metricsPort?: number } {
    return {
      managementPort: this.management.port,
      ...(this.admin && { adminPort: this.admin.port }),
      ...(this.metrics && { metricsPort: this.metrics.port }),
    };
  }
}
