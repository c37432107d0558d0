// @ts-check
/** Builds and finds elements. Texts are always text nodes, so that no response or link can add markup to the page. */

const COPIED_MS = 2_000;

/**
 * @template {HTMLElement} [Kind=HTMLElement]
 * @param {string} id
 */
export function byId(id) {
  return /** @type {Kind} */ (document.getElementById(id));
}

/**
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {Record<string, string>} [attributes]
 * @param {(Node | string)[]} children
 */
export function element(name, attributes = {}, ...children) {
  const created = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, value);
  created.append(...children);
  return created;
}

/** Quotes any text as one argument of a shell command. @param {string} text */
export const shellQuoted = (text) => `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** @param {string} text */
export const code = (text) => element('code', {}, text);

/**
 * Shows the result of a step. Screen readers announce it, because the element is a live region.
 * @param {HTMLElement} region
 * @param {'success' | 'problem'} kind
 * @param {(Node | string)[]} children
 */
export function showResult(region, kind, ...children) {
  region.className = `result ${kind}`;
  region.replaceChildren(element('p', {}, ...children));
}

/**
 * Runs an action on each click. Meanwhile further clicks have no effect, and the button keeps the focus.
 * @param {string} id
 * @param {() => Promise<void> | void} action
 */
export function onClick(id, action) {
  const button = byId(id);
  button.addEventListener('click', () => void runOnce(button, action));
}

/**
 * Runs an action when a form is submitted, by its button or by Enter.
 * @param {string} id
 * @param {() => Promise<void> | void} action
 */
export function onSubmit(id, action) {
  const form = byId(id);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void runOnce(form, action);
  });
}

/** @param {HTMLElement} control @param {() => Promise<void> | void} action */
async function runOnce(control, action) {
  if (control.getAttribute('aria-busy') === 'true') return;
  control.setAttribute('aria-busy', 'true');
  try {
    await action();
  } finally {
    control.removeAttribute('aria-busy');
  }
}

/**
 * A button that copies a text. Its name changes for a moment, which screen readers announce.
 * @param {string} label
 * @param {() => string} textOf
 */
export function copyButton(label, textOf) {
  const button = element('button', { type: 'button', class: 'copy', 'aria-live': 'polite' }, label);
  button.addEventListener('click', async () => {
    const copied = await navigator.clipboard.writeText(textOf()).then(
      () => true,
      () => false,
    );
    button.textContent = copied ? 'Copied' : 'Not allowed by the browser';
    setTimeout(() => {
      button.textContent = label;
    }, COPIED_MS);
  });
  return button;
}
