import { Injectable } from '@nestjs/common';

/**
 * Knows whether the cluster may send requests to this process (docs/decisions/0028-readiness.md). The listener itself
 * responds until the application has started, so an instance of this class means that the database was usable once.
 */
@Injectable()
export class Readiness {
  private stopping = false;

  /** Why this process is not ready; `undefined` if it is ready. */
  get unreadyReason(): 'stopping' | undefined {
    return this.stopping ? 'stopping' : undefined;
  }

  /** Makes the process unready, so that the cluster stops sending requests. */
  stop(): void {
    this.stopping = true;
  }
}
