import type { ServerOptions } from 'node:http';
import type { Port } from './surfaces.js';

/** docs/operations.md, "Connections and memory", shows how the bounds fit into the memory of a pod. */
export interface ConnectionLimits {
  /** Beyond this number, each new connection destroys the most dispensable one (open-connections.ts). */
  maxConnections: number;
  /** From the first byte, or from the opening of the connection, to the end of the header. */
  headersTimeoutMs: number;
  /** From the same moment to the end of the body. */
  requestTimeoutMs: number;
  /** From a response to the next request. */
  keepAliveTimeoutMs: number;
  /** How long a response may wait for the client to read it. */
  readingTimeoutMs: number;
  /** How long a connection stays after its last response, so that the client can read the response. */
  lingerMs: number;
  /** How often the timeouts above are checked, except `lingerMs`. */
  checkIntervalMs: number;
}

const TIMEOUTS = {
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 20_000,
  keepAliveTimeoutMs: 65_000, // longer than the 60 s after which load balancers close an idle connection
  readingTimeoutMs: 20_000,
  lingerMs: 2_000,
  checkIntervalMs: 1_000,
};

export const CONNECTION_LIMITS: Record<Port, ConnectionLimits> = {
  public: { ...TIMEOUTS, maxConnections: 1_000 },
  // only the cluster reaches this port: probes, Prometheus, the operator, and pools of resource servers
  management: { ...TIMEOUTS, maxConnections: 250 },
  // the operator, and a few Prometheus servers
  admin: { ...TIMEOUTS, maxConnections: 50 },
  metrics: { ...TIMEOUTS, maxConnections: 50 },
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
