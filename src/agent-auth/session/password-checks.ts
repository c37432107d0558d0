import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Counter } from 'prom-client';
import { OAuthError } from '../../oauth/oauth-error.js';
import { AbandonedTaskError, BoundedQueue, QueueFullError } from '../../platform/bounded-queue.js';
import { disconnectSignal } from '../../platform/http/http-socket.js';
import { MetricsRegistry } from '../../platform/metrics.js';
import { isPasswordOf, MAX_PARALLEL_HASHES } from '../../registry/agent-password.js';

/** About 2 s of work for one thread, at 20 ms for each hash. */
const MAX_WAITING_CHECKS = 80;

const OUTCOMES = ['checked', 'rejected', 'abandoned'] as const;

/**
 * Checks the passwords of sign-ins in a bounded queue. A hash costs 20 ms of a core and 19 MiB, and any caller can ask
 * for one: without a bound, a flood of sign-ins makes an agent wait for all of them.
 */
@Injectable()
export class PasswordChecks {
  /** @internal */
  readonly queue = new BoundedQueue({ maxRunning: MAX_PARALLEL_HASHES, maxWaiting: MAX_WAITING_CHECKS });
  private readonly outcomes: Counter<'outcome'>;

  constructor(metrics: MetricsRegistry) {
    this.outcomes = new Counter({
      name: 'cas_password_checks_total',
      help: 'Password checks of sign-ins. rejected: the queue was full. abandoned: the client disconnected while it waited.',
      labelNames: ['outcome'],
      registers: [metrics],
    });
    for (const outcome of OUTCOMES) this.outcomes.inc({ outcome }, 0);
    metrics.gauge(
      'cas_password_queue_waiting',
      'Sign-ins that wait for their password check.',
      () => this.queue.waiting,
    );
  }

  /**
   * Whether the password belongs to the hash. The check of a client that disconnects before its turn is never computed.
   *
   * @throws OAuthError `temporarily_unavailable`, 503, if the queue is full
   * @throws AbandonedTaskError if the client has disconnected
   */
  async isPasswordOf(passwordHash: string, password: string, request: Request): Promise<boolean> {
    try {
      const isRight = await isPasswordOf(passwordHash, password, this.queue, disconnectSignal(request.res as Response));
      this.outcomes.inc({ outcome: 'checked' });
      return isRight;
    } catch (error) {
      if (error instanceof AbandonedTaskError) this.outcomes.inc({ outcome: 'abandoned' });
      if (!(error instanceof QueueFullError)) throw error;
      this.outcomes.inc({ outcome: 'rejected' });
      throw OAuthError.unavailable(error);
    }
  }
}
