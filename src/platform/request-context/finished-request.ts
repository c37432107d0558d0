import type { Port } from '../http/surfaces.js';

/** The ids of a token whose signature is valid. */
export interface TokenIds {
  jti: string;
  /** Absent for a token of a trusted issuer, which may use an email address as the subject. */
  sub?: string;
  client_id?: string;
}

/** A request after its response, for the log, the metrics and the traces. */
export interface FinishedRequest {
  id: string;
  /** The port that received the request. */
  surface: Port;
  method: string;
  /** The pattern of the route, `none` if no route matched. It is never the path that the caller sent. */
  route: string;
  /** 499 if the caller left before the response was written. */
  status: number;
  /** From the head of the request to the last byte of the response. */
  milliseconds: number;
  grant?: string | undefined;
  clientId?: string | undefined;
  organizationId?: string | undefined;
  token?: TokenIds | undefined;
  resourceServerId?: string | undefined;
  error?: string | undefined;
  reason?: string | undefined;
  cause?: unknown;
  trace?: RequestTrace | undefined;
}

/** The spans of one request. */
export interface RequestTrace {
  /** Runs a part of the request's work in a span of its own, below the span that is current. */
  span<Result>(name: string, attributes: Record<string, string>, work: () => Promise<Result>): Promise<Result>;
  end(request: FinishedRequest): void;
}
