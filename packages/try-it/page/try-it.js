// @ts-check
/** The try-it page: connects the buttons of its steps. */

import { connectBackendStep } from './backend-step.js';
import { connectCustomerSteps } from './customer-steps.js';
import { lastCustomer, startPage } from './demo.js';
import { connectEndSteps } from './end-steps.js';
import { markStep } from './flows-view.js';
import { showKnownCustomer } from './identity-view.js';
import { connectMoveStep } from './move-step.js';
import { prepareSignIn } from './sign-in-link.js';
import { connectUserStep } from './user-step.js';

void startPage(() => {
  markStep('new');
  connectCustomerSteps();
  connectMoveStep();
  connectBackendStep();
  connectUserStep();
  connectEndSteps();
  prepareSignIn();
  showKnownCustomer(lastCustomer());
});
