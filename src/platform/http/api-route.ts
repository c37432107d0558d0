import type { Type } from '@nestjs/common';
import { Reflector } from '@nestjs/core';

/**
 * What the OpenAPI document says of a route beyond what its decorators tell: address, method, guards, status. Classes
 * are those that validate, or whose rules describe an answer (class-validator).
 */
export interface ApiRouteDescription {
  summary: string;
  /** The parameters of the query. */
  query?: Type<object>;
  /** The body; several classes: it is of one of them. */
  body?: Type<object> | Type<object>[];
  /** How the body may be written; JSON when left out. */
  bodyFormats?: ('json' | 'form')[];
  /** The JSON answer, or the media type of one that is not JSON; an empty object when left out. */
  response?: Type<object> | string;
  /** Whether it may send the browser on. */
  redirects?: boolean;
  /** Names of security schemes, where no guard tells: any of them, `none` too, lets a caller in. */
  security?: string[];
  /** Statuses of refusals that neither a guard nor a body brings. */
  errorStatuses?: number[];
}

/** Describes a route for the OpenAPI document. */
export const ApiRoute = Reflector.createDecorator<ApiRouteDescription>();
