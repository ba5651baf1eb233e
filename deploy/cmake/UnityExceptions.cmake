# Files with names in unnamed namespaces that another file of their library has too: compiled by themselves. A file that is
# not there is ignored. Make names unique and remove the line.
set(alone
  deploy/doctor/judge.cc
  bench/plan/plan_calibration.cc
  bench/ps/peers/tcp_end.cc
  bench/ps/ps_job.cc
  bench/ps/ps_side.cc
  bench/scaling/scaling_grid.cc
  bench/scaling/scaling_table.cc
  bench/step/step_command.cc)
foreach(file IN LISTS alone)
  foreach(library models ps strategies worker deploy bench_harness bench_step bench_all_reduce bench_scaling bench_ps bench_ps_peers
                  bench_plan bench_compare bench_virtual bench_compare_report)
    if(TARGET syncopate_${library})
      set_source_files_properties(${PROJECT_SOURCE_DIR}/${file} TARGET_DIRECTORY syncopate_${library}
                                  PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
endforeach()
