from __future__ import annotations

from tests import bad_inputs


def test_the_page_shows_what_the_code_says():
    assert bad_inputs.PAGE.read_text() == bad_inputs.page(), "run python -m tests.bad_inputs"


def test_messages_differ_and_say_what_to_do():
    messages = [bad_inputs.array_message(code) for code in bad_inputs.ARRAYS]
    messages += [bad_inputs.file_message(*item) for item in (bad_inputs.FILES | bad_inputs.EVIDENCE).items()]
    messages += [bad_inputs.command_message(line) for line in bad_inputs.COMMANDS]
    assert len(messages) >= 25
    # Dense and sparse couplings with the same fault get the same message; no others do.
    assert len(set(messages)) == len(messages) - 2
