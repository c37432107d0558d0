import type { IncomingMessage, RequestListener } from 'node:http';
import type { FinishedRequest } from '../request-context/finished-request.js';
import type { RequestContext } from '../request-context/request-context.js';
import type { BrokenRequestBody } from './broken-request.js';

/** Observes requests. For bytes that are no request, only `requestFinished` is called. */
export interface RequestObserver {
  requestReceived(context: RequestContext, request: IncomingMessage): void;
  requestFinished(request: FinishedRequest): void;
}

/**
 * What the application adds to a listener: responses during the start, the body of an error response, and the observer.
 */
export interface ListenerHooks {
  starting: RequestListener;
  brokenRequest: BrokenRequestBody;
  observer: RequestObserver;
}
