import type { Type } from '@nestjs/common';
import { Reflector } from '@nestjs/core';

/**
 * Describes a route in the OpenAPI document, in addition to the path, method, guards and status of its decorators. The
 * class-validator rules of a class become its schema.
 */
export interface ApiRouteDescription {
  summary: string;
  /** The parameters of the query. */
  query?: Type<object>;
  /** The body. If there are several classes, the body has the form of one of them. */
  body?: Type<object> | Type<object>[];
  /** The accepted formats of the body; JSON by default. */
  bodyFormats?: ('json' | 'form')[];
  /** The class of a JSON response, or the media type of another response; an empty object by default. */
  response?: Type<object> | string;
  /** Whether the response also has the claims that grants declare. */
  withGrantClaims?: boolean;
  /** Whether the response may redirect the browser. */
  redirects?: boolean;
  /**
   * Names of security schemes, for a route without a guard. Any one of them is sufficient; `none` makes them optional.
   */
  security?: string[];
  /** Statuses of error responses, in addition to those of the guards and the body. */
  errorStatuses?: number[];
}

/** Describes a route for the OpenAPI document. */
export const ApiRoute = Reflector.createDecorator<ApiRouteDescription>();
