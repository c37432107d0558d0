import { Module } from '@nestjs/common';
import { FailedAuthentications } from './failed-authentications.js';
import { OperatorGuard } from './operator.guard.js';
import { OperatorCredentials } from './operator-credentials.js';

/** Authenticates the operator, for the routes on the management port that only the operator may call. */
@Module({
  providers: [OperatorCredentials, OperatorGuard, FailedAuthentications],
  exports: [OperatorCredentials, OperatorGuard, FailedAuthentications],
})
export class OperatorModule {}
