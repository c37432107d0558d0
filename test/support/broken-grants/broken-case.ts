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

/** What lies between the kit and the service, and changes what one says to the other. */
export interface Lie {
  request?: (sent: SentRequest) => void;
  answer?: (given: GivenAnswer) => void;
}

/** A grant that breaks a rule, by itself or since the service around it does, and what the kit says of it. */
export interface BrokenCase extends Partial<GrantKit> {
  what: string;
  grant: Type;
  modules: Type[];
  lie?: Lie;
  /** Breaks the service itself. */
  damage?: (service: TestService) => void;
  /** The title of the rule that is broken. */
  rule: string;
  failure: RegExp;
  after?: () => void;
}
