import type { ServerOptions } from 'node:http';
import type { Port } from './surfaces.js';

/** docs/operations.md, "Connections and memory", shows how the bounds fit into the memory of a pod. */
export interface ConnectionLimits {
  /** Beyond this number, each new connection is closed immediately. */
  maxConnections: number;
  /** From the first byte, or from the opening of the connection, to the end of the header. */
  headersTimeoutMs: number;
  /** From the same moment to the end of the body. */
  requestTimeoutMs: number;
  /** From a response to the next request. By default KEEP_ALIVE_SECONDS. */
  keepAliveTimeoutMs: number;
  /** How long a connection may transfer nothing while a request is under way. */
  silenceTimeoutMs: number;
  /** How often `headersTimeoutMs` and `requestTimeoutMs` are checked. */
  checkIntervalMs: number;
}

export const TIMEOUTS: Omit<ConnectionLimits, 'maxConnections' | 'keepAliveTimeoutMs'> = {
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 20_000,
  silenceTimeoutMs: 60_000, // longer than the longest request: 28 s for the revocation feed
  checkIntervalMs: 1_000,
};

export const MAX_CONNECTIONS: Record<Port, number> = {
  public: 1_000,
  // only the cluster reaches this port: probes, Prometheus, the operator, and pools of resource servers
  management: 250,
  admin: 50,
};

const MAX_HEADER_BYTES = 16 * 1024;
/** Without this bound, 16 KiB of short header lines take 10 times as much memory. */
export const MAX_HEADER_LINES = 100;

export function serverOptions(limits: ConnectionLimits): ServerOptions {
  return {
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: limits.checkIntervalMs,
    highWaterMark: 16 * 1024, // of what no handler has read yet; the default of node 20
    requireHostHeader: false, // node's own error response has no body; `headViolation` has the rule
  };
}
