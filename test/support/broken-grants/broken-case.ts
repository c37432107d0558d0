import type { Type } from '@nestjs/common';
import type { GrantKit } from '../../../src/testing/grant-kit.js';
import type { TestService } from '../../../src/testing/test-service.js';

export interface SentRequest {
  path: string;
  headers: Record<string, string>;
  body: string;
}

export interface GivenAnswer {
  path: string;
  status: number;
  headers: Headers;
  text: string;
}

/** A man in the middle between the kit and the service, which changes requests and responses. */
export interface Lie {
  request?: (sent: SentRequest) => void;
  answer?: (given: GivenAnswer) => void;
}

/** A grant that violates a rule, by itself or because the service is broken, and the expected report of the kit. */
export interface BrokenCase extends Partial<GrantKit> {
  what: string;
  grant: Type;
  modules: Type[];
  lie?: Lie;
  /** Breaks the service itself. */
  damage?: (service: TestService) => void;
  /** The title of the violated rule. */
  rule: string;
  failure: RegExp;
  after?: () => void;
}
