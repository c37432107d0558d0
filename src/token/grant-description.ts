import type { Type } from '@nestjs/common';
import type { ApiError, ApiExamples } from '../platform/http/api-route.js';

/** The texts of a grant in the OpenAPI document. The parameters, settings and claims have theirs by `@ApiProperty`. */
export interface GrantDescription {
  /** What the grant does, and for whom. */
  description: string;
  /** Examples of requests. If omitted, one example with the required parameters. */
  examples?: ApiExamples;
  /** The class that describes the fields of `responds` and `mayRespond`. */
  response?: Type<object>;
  /** The errors of the grant, in addition to those of the endpoint. */
  errors?: () => ApiError[];
}
