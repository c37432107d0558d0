import { defineExtension, OAuthError } from '../../src/public/grant.js';

const CAPTCHA_TIMEOUT_MS = 2_000;

/** Creates the customer of a browser only with a solved captcha, which the page sends in the parameter `captcha`. */
export const captchaExtension = defineExtension({
  beforeNewCustomer: async ({ parameters: { captcha } }) => {
    if (typeof captcha !== 'string') throw OAuthError.invalidRequest('captcha: required');
    const body = new URLSearchParams({ secret: `${process.env.CAPTCHA_SECRET}`, response: captcha });
    const signal = AbortSignal.timeout(CAPTCHA_TIMEOUT_MS);
    const { success } = await fetch(`${process.env.CAPTCHA_URL}`, { method: 'POST', body, signal })
      .then((response) => response.json() as Promise<{ success?: boolean }>)
      .catch((cause) => Promise.reject(OAuthError.unavailable(cause)));
    if (success !== true) throw OAuthError.invalidRequest('captcha: not solved');
  },
});
