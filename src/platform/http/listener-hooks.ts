import type { IncomingMessage, RequestListener } from 'node:http';
import type { BrokenRequestBody } from './broken-request.js';
import type { FinishedRequest, RequestRecord } from './current-request.js';

/** Is called when a request begins and when it has ended; for bytes that are no request, only with the latter. */
export interface RequestObserver {
  begun(record: RequestRecord, request: IncomingMessage): void;
  finished(request: FinishedRequest): void;
}

/** What the application adds: responses before it serves, the body of an error response, and the observer. */
export interface ListenerHooks {
  starting: RequestListener;
  brokenRequest: BrokenRequestBody;
  observer: RequestObserver;
}
