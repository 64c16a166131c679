"""Emacs itself, in batch mode, with eglot and with lsp-mode: diagnostics, settings and a hover.

What runs is the configuration of docs/editors.md, taken from that page.
"""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from real_editors import RealEditor, documented

pytestmark = pytest.mark.thorough

COMMON = """
(require 'cl-lib)
(require 'json)

(defun test-wait (what holds)
  (let ((end (+ (float-time) 60)))
    (while (and (not (funcall holds)) (< (float-time) end))
      (accept-process-output nil 0.05))
    (unless (funcall holds)
      (message "never: %s" what)
      (kill-emacs 1))))

(defun test-write (diagnostics hover)
  (let ((coding-system-for-write 'utf-8))
    (with-temp-file (getenv "DEEPSCOPE_TEST_OUT")
      (insert (json-encode (list (cons 'diagnostics (vconcat (mapcar #'vconcat diagnostics))) (cons 'hover hover)))))))
"""

EGLOT = """
(defun test-diagnostics ()
  (mapcar (lambda (one) (list (line-number-at-pos (flymake-diagnostic-beg one))
                              (symbol-name (flymake-diagnostic-type one)) (flymake-diagnostic-text one)))
          (flymake-diagnostics)))

(find-file (getenv "DEEPSCOPE_TEST_FILE"))
(python-mode)
(apply #'eglot (eglot--guess-contact))
(test-wait "the server is there" #'eglot-managed-p)
(test-wait "three diagnostics are shown" (lambda () (flymake-start) (= (length (flymake-diagnostics)) 3)))
(goto-char (point-min))
(insert "# typed\\n# in Emacs\\n")
(eglot--signal-textDocument/didChange)
(test-wait "diagnostics follow the edit"
           (lambda () (flymake-start) (equal (sort (mapcar #'car (test-diagnostics)) #'<) '(8 9 14))))
(goto-char (point-min))
(forward-line 7)
(forward-char 10)
(test-write (test-diagnostics)
            (plist-get (plist-get (jsonrpc-request (eglot-current-server) :textDocument/hover
                                                   (eglot--TextDocumentPositionParams))
                                  :contents)
                       :value))
(kill-emacs 0)
"""

LSP_MODE = """
(require 'lsp-modeline)
(require 'lsp-diagnostics)
(require 'lsp-lens)
(setq lsp-auto-guess-root t
      lsp-diagnostics-provider :flymake
      lsp-headerline-breadcrumb-enable nil
      lsp-modeline-code-actions-enable nil
      lsp-modeline-diagnostics-enable nil
      lsp-modeline-workspace-status-enable nil)
(find-file (getenv "DEEPSCOPE_TEST_FILE"))
(python-mode)
(lsp)
(defun test-diagnostics () (gethash (lsp--fix-path-casing buffer-file-name) (lsp-diagnostics)))
(test-wait "three diagnostics are shown" (lambda () (= (length (test-diagnostics)) 3)))
(goto-char (point-min))
(forward-line 5)
(forward-char 10)
(test-write (mapcar (lambda (one) (list (1+ (lsp:position-line (lsp:range-start (lsp:diagnostic-range one))))
                                        (lsp:diagnostic-code? one) (lsp:diagnostic-message one)
                                        (lsp:diagnostic-severity? one)))
                    (test-diagnostics))
            (gethash "value" (gethash "contents" (lsp-request "textDocument/hover"
                                                              (lsp--text-document-position-params)))))
(kill-emacs 0)
"""


def lacks(package: str) -> bool:
    emacs = shutil.which("emacs")
    if emacs is None:
        return True
    asked = [emacs, "--batch", "--eval", f'(unless (locate-library "{package}") (kill-emacs 1))']
    return subprocess.run(asked, capture_output=True, check=False).returncode != 0


def shown_by(tmp_path: Path, configuration: str, check: str) -> tuple[dict[int, list[str]], str]:
    """Diagnostics by line (kind or code, message), and the hover."""
    editor = RealEditor(tmp_path)
    arguments = ["-l", str(editor.write("init.el", configuration)), "-l", str(editor.write("check.el", COMMON + check))]
    shown = json.loads(editor.run("emacs", "--batch", *arguments))
    return {line: rest for line, *rest in shown["diagnostics"]}, shown["hover"]


@pytest.mark.skipif(lacks("eglot"), reason="Emacs with eglot is not installed (Debian: apt-get install elpa-eglot)")
def test_eglot_shows_the_diagnostics_takes_settings_and_shows_the_hover(tmp_path: Path) -> None:
    configuration = documented("elisp", "eglot-server-programs")
    assert ':inlayHints "hot"' in configuration
    configuration = configuration.replace(':inlayHints "hot"', ':inlayHints "hot" :diagnostics "hotLines"')
    diagnostics, hover = shown_by(tmp_path, "(require 'eglot)\n" + configuration, EGLOT)
    assert diagnostics[8][0] == "eglot-note"
    assert "Hot line: 19 % of the run's cost" in diagnostics[8][1]
    assert {kind for kind, _ in diagnostics.values()} == {"eglot-note"}  # the finding, a warning, is switched off
    assert "**Net.forward, line 8** (line 6 when recorded)" in hover
    assert "| cost | 38 µs | 19 % of the run's cost |" in hover


@pytest.mark.skipif(lacks("lsp-mode"), reason="lsp-mode is not installed (Debian: apt-get install elpa-lsp-mode)")
def test_lsp_mode_shows_the_diagnostics_and_the_hover(tmp_path: Path) -> None:
    configuration = documented("elisp", "lsp-register-client")
    diagnostics, hover = shown_by(tmp_path, "(require 'lsp-mode)\n" + configuration, LSP_MODE)
    assert {line: code for line, (code, *_) in diagnostics.items()} == {6: "hot-line", 7: "hot-line", 12: "DS005"}
    # Hot lines are hints (4): lsp-mode's list of errors leaves them out.
    assert {line: severity for line, (*_, severity) in diagnostics.items()} == {6: 4, 7: 4, 12: 2}
    assert "Hot line: 19 % of the run's cost" in diagnostics[6][1]
    assert "| cost | 38 µs | 19 % of the run's cost |" in hover
