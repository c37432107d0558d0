// @ts-check
/** The try-it page: connects the buttons of its steps. */

import { connectBackendStep } from './backend-step.js';
import { connectCustomerSteps } from './customer-steps.js';
import { hasDemoOrigin } from './demo.js';
import { connectEndSteps } from './end-steps.js';
import { connectMoveStep } from './move-step.js';
import { prepareSignIn } from './sign-in-link.js';

if (hasDemoOrigin()) {
  connectCustomerSteps();
  connectMoveStep();
  connectBackendStep();
  connectEndSteps();
  prepareSignIn();
}
