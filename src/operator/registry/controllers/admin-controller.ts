import {
  applyDecorators,
  type CallHandler,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
  ServiceUnavailableException,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { type Observable, throwError, timeout } from 'rxjs';
import { OperatorGuard, RequiredRole } from '../../../http/callers/operator.guard.js';
import { ManagementController } from '../../../platform/http/listener.decorators.js';

/** The longest wait of the operator for a response, including the wait for the transactions of other operators. */
const ADMIN_TIMEOUT_MS = 10_000;

/** Limits only the response: the audit and the second revocation of ended tokens must follow a commit. */
@Injectable()
class AdminTimeoutInterceptor implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const late = () => throwError(() => new ServiceUnavailableException('the registry did not respond in time'));
    return next.handle().pipe(timeout({ first: ADMIN_TIMEOUT_MS, with: late }));
  }
}

export const AdminController = (path: string): ClassDecorator =>
  applyDecorators(
    ManagementController(`admin/${path}`),
    UseGuards(OperatorGuard),
    RequiredRole('registry'),
    UseInterceptors(AdminTimeoutInterceptor),
  );
