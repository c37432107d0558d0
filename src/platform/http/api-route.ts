import type { Type } from '@nestjs/common';
import { Reflector } from '@nestjs/core';

/** The status and the code of an error response: `409 conflict`. */
export type ApiError = `${number} ${string}`;

/**
 * Describes a route in the OpenAPI document, in addition to the path, method, guards and status of its decorators. The
 * class-validator rules of a class become its schema.
 */
export interface ApiRouteDescription {
  summary: string;
  /** What the route does, for a caller who has not read the protocol. */
  description?: string;
  /** The path in the document, if it differs from that of the decorators by a slash at its end. @internal */
  path?: `${string}/`;
  /** The texts of the parameters of the path, by their names. */
  pathParameters?: Record<string, ApiPropertyText | undefined>;
  /** The parameters of the query; by default those of `@ValidatedQuery`. */
  query?: Type<object>;
  /**
   * The body; by default that of `@ValidatedBody` or `@ClientRequest`. If there are several classes, the body has the
   * form of one of them.
   */
  body?: Type<object> | Type<object>[];
  /** The accepted formats of the body; JSON by default. */
  bodyFormats?: ('json' | 'form')[];
  /** The class of a JSON response, or the media type of another response; an empty object by default. */
  response?: Type<object> | string;
  /** The other form of a JSON response, if the query decides which one it has. @internal */
  otherResponse?: Type<object>;
  /** Whether the response also has the claims that grants declare. @internal */
  withGrantClaims?: boolean;
  /** Whether the response is a file that a page loads. The document omits such a route. */
  isPageFile?: boolean;
  /** The texts of the headers of a request that the route reads, by their names. @internal */
  requestHeaders?: Record<string, ApiPropertyText>;
  /** The texts of the headers of a successful response, by their names. @internal */
  responseHeaders?: Record<string, ApiPropertyText>;
  /** Whether a response with the status 201 says that something was created. @internal */
  mayCreate?: boolean;
  /** Whether the response may redirect the browser. */
  redirects?: boolean;
  /**
   * Names of security schemes, for a route without a guard. Any one of them is sufficient; `none` makes them optional.
   */
  security?: string[];
  /** The errors of the route, in addition to 500, 503 and those of the guards, the query and the body. */
  errors?: readonly ApiError[];
}

/** Describes a route for the OpenAPI document. */
export const ApiRoute = Reflector.createDecorator<ApiRouteDescription>();

/** Describes the routes that a controller inherits, by the names of their methods. */
export const ApiInheritedRoutes = Reflector.createDecorator<Record<string, ApiRouteDescription>>();

/** The text of a parameter or field in the OpenAPI document. */
export interface ApiPropertyText {
  /** One or two sentences for a caller who has not read the protocol. */
  description: string;
  /** A valid value. */
  example?: unknown;
}

const API_PROPERTY = Symbol('ApiProperty');

/** Describes a parameter or field of a body, query, response or claims class for the OpenAPI document. */
export const ApiProperty =
  (description: string, example?: unknown): PropertyDecorator =>
  (target, name) =>
    Reflect.defineMetadata(API_PROPERTY, { description, example }, target, name);

/** The text of a property of a class or its base classes; `undefined` without `@ApiProperty`. */
export function apiPropertyOf(type: Type<object>, name: string): ApiPropertyText | undefined {
  return Reflect.getMetadata(API_PROPERTY, type.prototype, name);
}
