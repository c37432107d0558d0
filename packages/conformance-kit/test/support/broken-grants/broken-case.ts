import type { Type } from '@nestjs/common';
import type { GrantKit } from '../../../src/grant-kit.js';
import type { TestService } from '../../../src/test-service.js';

export interface InterceptedRequest {
  path: string;
  headers: Record<string, string>;
  body: string;
}

export interface InterceptedResponse {
  path: string;
  status: number;
  headers: Headers;
  text: string;
}

/** Changes requests and responses between the kit and the service. */
export interface Interception {
  request?: (sent: InterceptedRequest) => void;
  response?: (intercepted: InterceptedResponse) => void;
  /** Whether `request` also gets requests whose method is not POST. Their body is `undefined`. */
  everyMethod?: boolean;
}

/** A grant that violates a rule, by itself or because the service is broken, and the expected report of the kit. */
export interface BrokenCase extends Partial<GrantKit> {
  description: string;
  grant: Type;
  modules: Type[];
  interception?: Interception;
  /** Breaks the service itself. */
  breakService?: (service: TestService) => void;
  /** The kit's time limit for a response, where the grant exceeds it. */
  responseTimeoutMs?: number;
  /** The title of the violated rule. */
  rule: string;
  failure: RegExp;
  restore?: () => void;
}
